"""A server that was ended can be started again at once."""

import socket

from sortformer.serve import bound


def test_a_port_is_free_again_once_its_server_has_ended():
    with bound("127.0.0.1", 0) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as client:
            listener.accept()[0].close()  # whoever ends a connection first is where it lingers
            assert client.recv(1) == b""
    with bound(*address) as again:
        assert again.getsockname() == address

"""Conversations for training, simulated on the fly from a bank of single voices."""

from sortformer.simulate.burst_pool import BurstPool
from sortformer.simulate.conversations import Conversations
from sortformer.simulate.dev_set import dev_set
from sortformer.simulate.pauses import Pauses
from sortformer.simulate.rooms import Rooms
from sortformer.simulate.simulator import Simulator
from sortformer.simulate.turn_patterns import TurnPatterns
from sortformer.simulate.voice import Voice
from sortformer.simulate.voice_bank import VoiceBank

__all__ = [
    "BurstPool",
    "Conversations",
    "Pauses",
    "Rooms",
    "Simulator",
    "TurnPatterns",
    "Voice",
    "VoiceBank",
    "dev_set",
]

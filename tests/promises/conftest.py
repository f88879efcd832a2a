from tests.interrupts.house import authority, house, nothing_remembered, sent

__all__ = ["authority", "house", "nothing_remembered", "sent"]

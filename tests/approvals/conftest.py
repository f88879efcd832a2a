from tests.approvals.house import empty_house, house

__all__ = ["empty_house", "house"]

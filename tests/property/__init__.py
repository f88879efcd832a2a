"""Any history, and any end of a process: what must always hold, looked at from outside."""

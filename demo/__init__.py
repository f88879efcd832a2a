"""A shop to try the service on: a tenant, an agent, and the far end that it acts upon."""

"""What people are shown: sign-in, the choice of a tenant, and what every page stands on."""

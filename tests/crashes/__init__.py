"""A process is killed before and after every commit of every service, and all of it is there, or none."""

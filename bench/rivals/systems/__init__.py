"""How each system is started, given a ticket, answered and killed; see `system.System`."""

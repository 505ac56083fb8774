"""The delivery desk: dispatch, routing, customer, invoice and the simulator, with their pure decisions."""

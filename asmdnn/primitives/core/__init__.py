"""The parts of every primitive: engine, description, kind, implementation list, descriptor, primitive, pack."""

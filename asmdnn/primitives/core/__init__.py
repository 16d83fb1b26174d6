"""What every primitive is made of: engine, description, kind, implementations in order, descriptor, primitive, pack."""

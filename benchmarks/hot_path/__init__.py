"""The step commit of the engine in five forms, on its own schema: what ADR 0001 stands on."""

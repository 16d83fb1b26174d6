"""Recurrent layers and their gradients, from the equations, in float64 with bounds for f32."""

"""The paper's model: IGNN, AGNN and attention flow."""

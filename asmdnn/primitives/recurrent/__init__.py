"""Recurrent layers: vanilla RNN, LSTM, GRU and linear-before-reset GRU."""

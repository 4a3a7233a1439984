"""Connections that break, whatever carries them."""


def cut(client):
    """Breaks the client's connection; it notices when it sends."""
    link = client._connection.link
    if hasattr(link, "_socket"):
        link._socket.shutdown(2)
    else:
        link.close()


def lose_next_reply(client, monkeypatch):
    """Has the next request be done, and its reply not come."""
    link = client._connection.link
    exchange = link.exchange

    def lose(*arguments):
        monkeypatch.undo()
        exchange(*arguments)
        link.close()
        raise ConnectionError("lost")

    monkeypatch.setattr(link, "exchange", lose)

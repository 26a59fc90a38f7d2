@_exported import SyncServer

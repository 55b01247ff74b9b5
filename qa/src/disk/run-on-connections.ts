/** Changes how the connections of this process are set up, from outside: for bugs to be found, and for early checkpoints. */
import { DatabaseSync } from 'node:sqlite'

/** Runs `sql` on each connection as soon as it was told how to sync. */
export function runOnConnections(sql: string): void {
  const { exec } = DatabaseSync.prototype
  DatabaseSync.prototype.exec = function (text) {
    exec.call(this, text)
    if (text.includes('synchronous')) exec.call(this, sql)
  }
}

/** How the suite sets up stores: without a log, and with additional statements on each connection. */
import { DatabaseSync } from 'node:sqlite'
import type { StoreOptions } from '@sluice/store'

/** Store options with the real clock and without a log. */
export const quietHost: Pick<StoreOptions, 'clock' | 'log'> = {
  clock: { nowMs: () => Date.now(), monotonicMs: () => performance.now(), sleep: async () => {} },
  log: { debug() {}, info() {}, warn() {}, error() {} },
}

/** Runs `sql` on each connection of this process after its `synchronous` pragma, to plant bugs and force early checkpoints. */
export function runOnConnections(sql: string): void {
  const { exec } = DatabaseSync.prototype
  DatabaseSync.prototype.exec = function (text) {
    exec.call(this, text)
    if (text.includes('synchronous')) exec.call(this, sql)
  }
}

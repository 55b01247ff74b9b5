/** Finds the listening socket that a service manager passes to the daemon, and that stays open while the daemon restarts. */
import { AppError } from '@sluice/sdk'

/** The number of the first descriptor that systemd passes. */
const FIRST_DESCRIPTOR = 3

/**
 * Returns the descriptor of the socket that is meant for this process, or undefined without one. Throws `config_invalid` if the
 * service manager passes several.
 */
export function inheritedSocket(env: Readonly<Record<string, string | undefined>>, pid: number): number | undefined {
  if (env.LISTEN_FDS === undefined || env.LISTEN_PID !== String(pid)) return undefined
  const count = Number(env.LISTEN_FDS)
  if (count === 0) return undefined
  if (count === 1) return FIRST_DESCRIPTOR
  throw new AppError(
    'config_invalid',
    `The service manager passes ${count} sockets, and Sluice serves one: keep a single ListenStream= line in the socket unit.`,
  )
}

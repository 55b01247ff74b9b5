/** The engine, asked for at each call: it starts after the tools do. */
import { AppError, type Host, type Sops } from '@sluice/sdk'

export type SopHost = Pick<Host, 'service' | 'clock'>

/** Throws `unavailable` where none runs, as in a command without a daemon. */
export function sopsOf(host: SopHost): Sops {
  const sops = host.service('sops')
  if (!sops) throw new AppError('unavailable', 'Procedures run in the daemon only, and this is none.')
  return sops
}

/** Refuses what even an operator may do only with a credential. */
import { AppError, type RouteRequest } from '@sluice/sdk'

/** Throws `forbidden` for a caller who is the operator because no pairing is required: any program of this machine is one. */
export function requireCredential({ device, onControlSocket }: Pick<RouteRequest, 'device' | 'onControlSocket'>, detail: string): void {
  if (device === null && !onControlSocket) throw new AppError('forbidden', detail)
}

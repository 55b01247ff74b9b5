/** Why a connection to the broker ended, or never came to be. */

export interface ConnectionEnd {
  readonly reason: string
  /** The broker turned us away, and would again. */
  readonly isRefusal: boolean
  /** It had let us in. */
  readonly wasConnected: boolean
}

/** Of CONNACK: protocol version, client id, user name or password, not authorized. Code 3 is a broker that is not ready. */
const REFUSALS: readonly unknown[] = [1, 2, 4, 5]

export function endOf(error: unknown, wasConnected = false): ConnectionEnd {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  // A host with several addresses fails with an error that has a code alone.
  const reason = (error instanceof Error ? error.message : String(error)) || String(code ?? 'unknown')
  return { reason, isRefusal: REFUSALS.includes(code) && !wasConnected, wasConnected }
}

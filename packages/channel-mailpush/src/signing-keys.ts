/** The public keys that push tokens are signed with: fetched when needed, and again, but not often, for a key id nobody knows. */

import { callProvider } from '@sluice/kit'
import type { Clock, Host } from '@sluice/sdk'
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose'

const KEEP_MS = 3_600_000
/** Whoever makes up key ids must not make us fetch more often. */
const UNKNOWN_KEY_MS = 300_000
const FAILED_MS = 10_000
const TIMEOUT_MS = 10_000

/** `find` throws what `jose` throws where no key fits, and `AppError` where the keys cannot be had. */
export function createSigningKeys({ fetch, clock }: { readonly fetch: Host['fetch']; readonly clock: Clock }, url: string) {
  let known: { readonly find: JWTVerifyGetKey; readonly atMs: number } | undefined
  let failed: { readonly error: unknown; readonly atMs: number } | undefined
  let fetching: Promise<void> | undefined
  const passedMs = (since: { readonly atMs: number } | undefined) => (since ? clock.nowMs() - since.atMs : Number.POSITIVE_INFINITY)

  const load = async (): Promise<void> => {
    try {
      const { createLocalJWKSet } = await import('jose')
      const signal = new AbortController().signal
      const { json } = await callProvider({ fetch, provider: 'the key server', url, method: 'GET', signal, timeoutMs: TIMEOUT_MS })
      known = { find: createLocalJWKSet(json as JSONWebKeySet), atMs: clock.nowMs() }
      failed = undefined
    } catch (error) {
      failed = { error, atMs: clock.nowMs() }
    }
  }
  const refresh = async (): Promise<void> => {
    if (passedMs(failed) < FAILED_MS) return
    fetching ??= load().finally(() => {
      fetching = undefined
    })
    await fetching
  }

  const find: JWTVerifyGetKey = async (header, token) => {
    if (passedMs(known) >= KEEP_MS) await refresh()
    // Keys that could not be fetched anew are as good as they were.
    if (!known) throw failed?.error
    const { errors } = await import('jose')
    try {
      return await known.find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || passedMs(known) < UNKNOWN_KEY_MS) throw error
      await refresh()
      return known.find(header, token)
    }
  }
  return { find }
}

/** The access token of the mail API: the configured one, or those the refresh token gets. */

import { callProvider, untilAborted } from '@sluice/kit'
import { AppError, errorText, type Host, Secret } from '@sluice/sdk'
import * as v from 'valibot'
import type { MailpushConfig } from './config.ts'

/** All of it throws `unavailable` where no token can be had, since nothing was done then. */
export interface AccessToken {
  current(signal: AbortSignal): Promise<Secret>
  /** A newer one than `refused`; undefined where there is none to be had but by the operator. */
  renewed(refused: Secret, signal: AbortSignal): Promise<Secret | undefined>
}

interface Held {
  readonly token: Secret
  readonly untilMs: number
}

/** A token is not used in its last seconds, which the request may take. */
const MARGIN_MS = 60_000
const grantSchema = v.object({
  access_token: v.pipe(v.string(), v.minLength(1)),
  expires_in: v.optional(v.pipe(v.number(), v.minValue(1)), 3600),
})

export function createAccessToken(host: Host, config: MailpushConfig): AccessToken {
  const { clock } = host
  const refresh = createRefresh(host, config)
  const given = config.oauth_token?.reveal().trim()
  let held: Held | undefined = given ? { token: new Secret(given), untilMs: Number.POSITIVE_INFINITY } : undefined
  let refreshing: Promise<Held> | undefined

  /** One request, however many ask. */
  const renew = async (signal: AbortSignal): Promise<Secret> => {
    if (!refresh) throw new AppError('unavailable', 'mailpush has no access token: set oauth_token, or refresh_token with its client')
    refreshing ??= refresh().finally(() => {
      refreshing = undefined
    })
    held = await untilAborted(refreshing, signal, 'The wait was cut off')
    return held.token
  }

  return {
    current: async (signal) => (held && clock.nowMs() < held.untilMs ? held.token : renew(signal)),
    async renewed(refused, signal) {
      if (held && held.token !== refused) return held.token
      return refresh ? renew(signal) : undefined
    },
  }
}

/** Undefined unless all three keys of a refresh are set. */
function createRefresh({ fetch, clock }: Host, config: MailpushConfig): (() => Promise<Held>) | undefined {
  const { client_id, client_secret, refresh_token, token_url: url } = config
  if (!client_id || !client_secret || !refresh_token) return undefined
  return async () => {
    const form = { grant_type: 'refresh_token', client_id, client_secret: client_secret.reveal(), refresh_token: refresh_token.reveal() }
    try {
      const { json } = await callProvider({
        fetch,
        provider: 'the token endpoint of mailpush',
        url,
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(form).toString(),
        signal: new AbortController().signal,
        explain,
      })
      const grant = v.parse(grantSchema, json)
      return { token: new Secret(grant.access_token), untilMs: clock.nowMs() + grant.expires_in * 1000 - MARGIN_MS }
    } catch (error) {
      if (error instanceof v.ValiError) throw new AppError('unavailable', 'the token endpoint of mailpush gave no access token')
      const wait = error instanceof AppError && error.retryAfterSecs !== undefined ? { retryAfterSecs: error.retryAfterSecs } : {}
      throw new AppError('unavailable', errorText(error), wait)
    }
  }
}

const refusalSchema = v.object({ error: v.string(), error_description: v.optional(v.string()) })

const explain = (json: unknown): string | undefined => {
  const { success, output } = v.safeParse(refusalSchema, json)
  return success ? [output.error, output.error_description].filter(Boolean).join(': ') : undefined
}

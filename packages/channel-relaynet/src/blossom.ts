/** Uploads encrypted files to a Blossom server: https://github.com/hzrd149/blossom/blob/master/buds/02.md and 11.md. */
import { callProvider, urlUnder } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import { AppError, type Clock, sha256Hex } from '@sluice/sdk'
import type { Identity } from './identity.ts'

const AUTH_KIND = 24_242
const VALID_SECS = 600
const UPLOAD_MS = 120_000

export interface BlossomServer {
  readonly fetch: typeof fetch
  readonly url: string
  readonly clock: Clock
}

/** Returns the address of the uploaded bytes. Throws `AppError` as `Channel.send` does. The same bytes may be uploaded again. */
export async function upload(server: BlossomServer, identity: Identity, bytes: Uint8Array, signal: AbortSignal): Promise<string> {
  const hash = sha256Hex(bytes)
  const nowSecs = Math.floor(server.clock.nowMs() / 1000)
  const authorization = identity.sign({
    kind: AUTH_KIND,
    created_at: nowSecs,
    tags: [
      ['t', 'upload'],
      ['x', hash],
      ['expiration', String(nowSecs + VALID_SECS)],
      ['server', new URL(server.url).hostname],
    ],
    content: 'Upload an attachment',
  })
  const { json } = await callProvider({
    fetch: server.fetch,
    provider: 'the Blossom server',
    url: urlUnder(server.url, '/upload'),
    method: 'PUT',
    headers: {
      authorization: `Nostr ${Buffer.from(JSON.stringify(authorization)).toString('base64url')}`,
      'content-type': 'application/octet-stream',
      'x-sha-256': hash,
    },
    body: bytes,
    signal,
    timeoutMs: UPLOAD_MS,
  })
  const url = textAt(json, 'url')
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new AppError('upstream', 'The Blossom server returned no address of the file')
  if (textAt(json, 'sha256') !== hash) throw new AppError('upstream', 'The Blossom server stored another file than it got')
  return url
}

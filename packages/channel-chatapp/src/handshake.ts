/** The provider's GET check before it sends anything: whoever knows `verify_token` gets the challenge back (§4.2). */
import { equalTexts, type Secret } from '@sluice/sdk'

export function handshake({ searchParams }: URL, verifyToken: Secret): Response {
  const expected = verifyToken.reveal().trim()
  const known = expected !== '' && equalTexts(searchParams.get('hub.verify_token') ?? '', expected)
  if (!known || searchParams.get('hub.mode') !== 'subscribe') return answer(403, 'Forbidden')
  const challenge = searchParams.get('hub.challenge')
  return challenge ? answer(200, challenge) : answer(400, 'Missing hub.challenge')
}

/** What the caller wrote comes back as it was, so a browser must not take it for a page. */
const answer = (status: number, text: string): Response =>
  new Response(text, { status, headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' } })

/** The provider's check of the URL (§4.2): the challenge goes back as it came. No token is asked for; none is documented. */
const CHALLENGE = 'hub.challenge'

export function answerHandshake(url: URL): Response {
  const challenge = url.searchParams.get(CHALLENGE)
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  return challenge ? new Response(challenge, { headers }) : new Response(`Missing ${CHALLENGE}`, { status: 400, headers })
}

export const handshakeQuery = (challenge: string): Readonly<Record<string, string>> => ({ [CHALLENGE]: challenge })

/** The SMTP server of the fake: `smtp-server` with a list of the mails that it accepted, and faults. */
import type { ProviderFault, ProviderRequest } from '@sluice/testkit/fake-provider'
import { listenOnLoopback } from '@sluice/testkit/loopback-server'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerOptions } from 'smtp-server'

/** A mail that the server accepted. */
export interface AcceptedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly raw: Buffer
}

export interface SmtpState {
  username: string
  password: string
  token: string | undefined
  readonly accepted: AcceptedMail[]
  /** Recipients that are refused, and the answer, such as `550 5.1.1 No such user`. */
  readonly refused: Map<string, string>
  /** Breaks the connection after this many bytes of the next mail. */
  cutDataAfter: number | undefined
  /** The answer of a server with a limit. */
  readonly limitAnswer: string
  faultOf(request: ProviderRequest): ProviderFault | undefined
}

export interface FakeSmtp {
  readonly port: number
  readonly server: SMTPServer
  /** Breaks all connections. */
  reset(): void
  close(): Promise<void>
}

const SIZE_MAX = 40_000_000

export async function startFakeSmtp(state: SmtpState, options: SMTPServerOptions = {}): Promise<FakeSmtp> {
  const server = new SMTPServer({
    logger: false,
    size: SIZE_MAX,
    authMethods: ['PLAIN', 'LOGIN', 'XOAUTH2'],
    allowInsecureAuth: true,
    hideSTARTTLS: !options.key,
    disableReverseLookup: true,
    ...options,
    onAuth(auth, _session, callback) {
      const isRight =
        auth.username === state.username &&
        (auth.method === 'XOAUTH2' ? auth.accessToken === state.token && state.token !== undefined : auth.password === state.password)
      if (isRight) return callback(null, { user: state.username })
      if (auth.method === 'XOAUTH2') return callback(null, { data: { status: '401', schemes: 'bearer mac' } })
      callback(refusal('535 5.7.8 Authentication credentials invalid'))
    },
    onRcptTo({ address }, _session, callback) {
      const answer = state.refused.get(address)
      callback(answer === undefined ? null : refusal(answer))
    },
    onData(stream, session, callback) {
      const reset = (): void => resetConnection(server, session.id)
      // A client that was killed ends the stream with an error: nothing was received.
      const received = receive(stream, state, reset).catch(() => undefined)
      void received.then((raw) => {
        if (!raw) return
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom ? mailFrom.address : ''
        const mail = { from, to: rcptTo.map(({ address }) => address), raw }
        const fault = state.faultOf(requestOf(mail))
        if (fault?.fault === 'hang') return
        if (fault?.fault === 'reset') return reset()
        if (fault?.fault === 'status') return callback(refusal(fault.status === 429 ? state.limitAnswer : '451 4.3.2 Not now'))
        state.accepted.push(mail)
        if (fault?.fault === 'lost' || fault?.fault === 'cut' || fault?.fault === 'garbage') return reset()
        const accept = (): void => callback(null, 'OK: queued')
        if (fault?.fault === 'slow') setTimeout(accept, fault.ms)
        else accept()
      })
    },
  })
  server.on('error', () => undefined)
  const { port, close } = await listenOnLoopback(server.server)
  const reset = (): void => {
    for (const { id } of server.connections) resetConnection(server, id)
  }
  return {
    port,
    server,
    reset,
    async close() {
      const closed = close()
      reset()
      await closed
    },
  }
}

/** Returns the mail; undefined if it was cut off. */
async function receive(stream: SMTPServerDataStream, state: SmtpState, reset: () => void): Promise<Buffer | undefined> {
  const { cutDataAfter: limit } = state
  state.cutDataAfter = undefined
  const pieces: Buffer[] = []
  let length = 0
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      pieces.push(piece)
      length += piece.length
      if (limit === undefined || length < limit) continue
      reset()
      return undefined
    }
  } catch {
    // The client has closed the connection.
    return undefined
  }
  return Buffer.concat(pieces)
}

/** The server has no public way to break one connection. */
function resetConnection({ connections }: SMTPServer, id: string): void {
  for (const connection of connections) {
    if (connection.id === id) (connection as unknown as { readonly _socket: { destroy(): void } })._socket.destroy()
  }
}

function refusal(answer: string): Error {
  return Object.assign(new Error(answer.slice(4)), { responseCode: Number(answer.slice(0, 3)) })
}

const requestOf = ({ to, raw }: AcceptedMail): ProviderRequest => ({
  method: 'DATA',
  path: `/${to.join(',')}`,
  query: new URLSearchParams(),
  headers: new Headers(),
  body: raw,
  json: undefined,
})

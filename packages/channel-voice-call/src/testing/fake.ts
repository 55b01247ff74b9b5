/**
 * The REST APIs of the three providers on loopback: the Call Control API of Telnyx (developers.telnyx.com/api/call-control), the Calls
 * resource of Twilio (twilio.com/docs/voice/api/call-resource) and the Call API of Plivo (plivo.com/docs/voice/api/call).
 */
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'

export const TELNYX_TOKEN = 'KEY-telnyx-api-01'
export const ACCOUNT = 'AC00000000000000000000000000000001'
export const AUTH_TOKEN = 'voice-auth-token-01'
export const OUR_NUMBER = '+15550005555'

export interface CommandSent {
  readonly call: string
  /** Such as `speak`, `hangup` or, on Twilio, `Url`. */
  readonly action: string
  readonly values: Readonly<Record<string, unknown>>
}

export interface VoiceFake extends FakeProvider {
  /** The commands that were accepted, without repeats that the provider dropped. */
  readonly commands: readonly CommandSent[]
  /** Ends a call: later commands for it are refused. */
  end(call: string): void
  changeToken(token: string): void
}

const SPEAK_CHARS_MAX = 3000
const TELNYX_DIALLED = 'v3:dialled'
const TELNYX_ACTIONS: Readonly<Record<string, readonly string[]>> = {
  answer: [],
  reject: ['cause'],
  speak: ['payload', 'voice'],
  transcription_start: [],
  streaming_start: ['stream_url'],
  hangup: [],
}

/** Starts the fake; call `close` to end it. */
export async function startVoiceFake(): Promise<VoiceFake> {
  let telnyxToken = TELNYX_TOKEN
  const commands: CommandSent[] = []
  const ids = new Set<string>()
  const answered = new Set([TELNYX_DIALLED])
  const ended = new Set<string>()

  const telnyx = ({ path, headers, json }: ProviderRequest): ProviderReply => {
    if (headers.get('authorization') !== `Bearer ${telnyxToken}`) return problem(401, '10009', 'Authentication failed')
    const values = (json ?? {}) as Readonly<Record<string, unknown>>
    const id = String(values.command_id ?? '')
    if (path === '/calls') {
      for (const name of ['connection_id', 'to', 'from'])
        if (!values[name]) return problem(422, '10004', `Missing required parameter ${name}`)
      if (!ids.has(id)) commands.push({ call: '', action: 'dial', values })
      ids.add(id)
      return { status: 200, body: { data: { record_type: 'call', call_control_id: TELNYX_DIALLED, is_alive: false } } }
    }
    const [, call = '', action = ''] = /^\/calls\/([^/]+)\/actions\/([a-z_]+)$/.exec(path) ?? []
    const needed = TELNYX_ACTIONS[action]
    if (!needed) return problem(404, '10005', 'The requested resource or URL could not be found.')
    if (ended.has(decodeURIComponent(call))) return problem(422, '90018', 'Call has already ended')
    if (action === 'reject' && answered.has(decodeURIComponent(call)))
      return problem(422, '10015', 'Only an incoming call that is not answered can be rejected')
    for (const name of needed) if (!values[name]) return problem(422, '10004', `Missing required parameter ${name}`)
    if (String(values.payload ?? '').length > SPEAK_CHARS_MAX) return problem(422, '10015', 'payload is too long')
    if (id === '' || !ids.has(id)) commands.push({ call: decodeURIComponent(call), action, values })
    ids.add(id)
    if (action === 'answer') answered.add(decodeURIComponent(call))
    return { status: 200, body: { data: { result: 'ok' } } }
  }

  const twilio = ({ method, path, headers, body }: ProviderRequest): ProviderReply => {
    if (headers.get('authorization') !== basic()) return { status: 401, body: { code: 20003, message: 'Authenticate', status: 401 } }
    const form = Object.fromEntries(new URLSearchParams(body.toString()))
    const call = new RegExp(`^/2010-04-01/Accounts/${ACCOUNT}/Calls(?:/([^/]+))?\\.json$`).exec(path)
    if (method !== 'POST' || !call)
      return { status: 404, body: { code: 20404, message: 'The requested resource was not found', status: 404 } }
    const [, sid] = call
    if (sid === undefined) {
      if (!form.To || !form.From || !(form.Url ?? form.Twiml))
        return { status: 400, body: { code: 21205, message: 'Url parameter is required', status: 400 } }
      commands.push({ call: 'CAdialled', action: 'dial', values: form })
      return { status: 201, body: { sid: 'CAdialled', status: 'queued' } }
    }
    if (ended.has(decodeURIComponent(sid)))
      return { status: 400, body: { code: 21220, message: 'Call is not in-progress. Cannot redirect.', status: 400 } }
    commands.push({ call: decodeURIComponent(sid), action: form.Status === 'completed' ? 'hangup' : 'Url', values: form })
    return { status: 200, body: { sid, status: 'in-progress' } }
  }

  const plivo = ({ method, path, headers, json }: ProviderRequest): ProviderReply => {
    if (headers.get('authorization') !== basic()) return { status: 401, body: { error: 'Unauthorized' } }
    const match = new RegExp(`^/v1/Account/${ACCOUNT}/Call/(?:([^/]+)/)?$`).exec(path)
    if (!match) return { status: 404, body: { error: 'not found' } }
    const [, call] = match
    const values = (json ?? {}) as Readonly<Record<string, unknown>>
    if (call === undefined) {
      for (const name of ['from', 'to', 'answer_url'])
        if (!values[name]) return { status: 400, body: { error: `${name} parameter not present` } }
      commands.push({ call: '', action: 'dial', values })
      return { status: 201, body: { message: 'call fired', request_uuid: 'r-1' } }
    }
    if (ended.has(decodeURIComponent(call))) return { status: 404, body: { error: 'call not found' } }
    if (method === 'DELETE') {
      commands.push({ call: decodeURIComponent(call), action: 'hangup', values })
      return { status: 204 }
    }
    if (!values.aleg_url) return { status: 400, body: { error: 'aleg_url parameter not present' } }
    commands.push({ call: decodeURIComponent(call), action: 'transfer', values })
    return { status: 202, body: { message: 'call transferred' } }
  }

  const provider = await startFakeProvider((request) => {
    if (request.path.startsWith('/2010-04-01/')) return twilio(request)
    return request.path.startsWith('/v1/') ? plivo(request) : telnyx(request)
  })
  return {
    ...provider,
    commands,
    end: (call) => void ended.add(call),
    changeToken(token) {
      telnyxToken = token
    },
  }
}

const basic = (): string => `Basic ${Buffer.from(`${ACCOUNT}:${AUTH_TOKEN}`).toString('base64')}`
const problem = (status: number, code: string, title: string): ProviderReply => ({
  status,
  body: { errors: [{ code, title, detail: title }] },
})

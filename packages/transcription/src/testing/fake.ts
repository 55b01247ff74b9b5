/** An OpenAI-compatible transcription service on loopback: it checks the form and returns the errors of the real service. */
import { equalTexts } from '@sluice/sdk'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'

/** How the fake starts. */
export interface TranscriptionFakeOptions {
  /** `null`: no key is required. */
  readonly apiKey?: string | null
  readonly models?: readonly string[]
  readonly port?: number
  /** Returns the text spoken in a recording. Default: its bytes as text. */
  hear?(recording: HeardRecording): string
}

/** A recording that was sent for transcription. */
export interface HeardRecording {
  readonly bytes: Uint8Array
  readonly fileName: string
  readonly mime: string
  readonly model: string
  readonly language?: string
}

/** A running fake of a transcription service. */
export interface TranscriptionFake extends FakeProvider {
  readonly apiKey: string | null
  /** The last `HEARD_MAX` transcribed recordings, in order. */
  readonly heard: readonly HeardRecording[]
}

const HEARD_MAX = 1000
const FILE_BYTES_MAX = 25 * 1024 * 1024
const FORMATS = ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm']
const FIELDS = new Set(['file', 'model', 'language', 'prompt', 'response_format', 'temperature'])

/** Starts the fake; call `close` to end it. */
export async function startTranscriptionFake(options: TranscriptionFakeOptions = {}): Promise<TranscriptionFake> {
  const { apiKey = 'transcription-fake-key', models = ['whisper-1'], port = 0 } = options
  const { hear = ({ bytes }: HeardRecording) => new TextDecoder().decode(bytes) } = options
  const heard: HeardRecording[] = []

  const answer = async (request: ProviderRequest): Promise<ProviderReply> => {
    const { method, path, headers } = request
    if (path !== '/v1/audio/transcriptions') return refusal(404, `Invalid URL (${method} ${path})`)
    if (method !== 'POST') return refusal(405, `Not allowed to ${method} on ${path}.`)
    if (apiKey !== null && !equalTexts(headers.get('authorization') ?? '', `Bearer ${apiKey}`)) return unauthorized(headers)
    const form = await formOf(request)
    if (!form) return refusal(400, 'Could not parse multipart form')
    const problem = problemOf(form, models)
    if (problem) return problem
    const recording = await recordingOf(form)
    heard.push(recording)
    if (heard.length > HEARD_MAX) heard.shift()
    return { status: 200, body: { text: hear(recording) } }
  }

  return { ...(await startFakeProvider(answer, { port })), apiKey, heard }
}

async function formOf({ headers, body }: ProviderRequest): Promise<FormData | undefined> {
  const type = headers.get('content-type') ?? ''
  if (!type.startsWith('multipart/form-data; boundary=')) return undefined
  return await new Response(Uint8Array.from(body), { headers: { 'content-type': type } }).formData().catch(() => undefined)
}

function problemOf(form: FormData, models: readonly string[]): ProviderReply | undefined {
  const unknown = [...form.keys()].find((name) => !FIELDS.has(name))
  if (unknown !== undefined) return refusal(400, `Unrecognized request argument supplied: ${unknown}`)
  const [file, model, format] = [form.get('file'), form.get('model'), form.get('response_format')]
  if (!(file instanceof File)) return refusal(400, "[{'type': 'missing', 'loc': ('body', 'file'), 'msg': 'Field required'}]")
  if (typeof model !== 'string') return refusal(400, 'you must provide a model parameter')
  if (!models.includes(model)) return refusal(404, `The model '${model}' does not exist or you do not have access to it.`)
  if (format !== null && format !== 'json') return refusal(400, 'This fake answers only in the format json')
  if (file.size > FILE_BYTES_MAX) return refusal(413, `Maximum content size limit (${FILE_BYTES_MAX}) exceeded`)
  if (!FORMATS.includes(file.name.split('.').at(-1) ?? '')) {
    return refusal(400, `Invalid file format. Supported formats: ['${FORMATS.join("', '")}']`)
  }
  if (file.size === 0) return refusal(400, 'Audio file is too short. Minimum audio length is 0.1 seconds.')
  const language = form.get('language')
  if (language !== null && !/^[a-z]{2,3}$/.test(String(language))) return refusal(400, `Invalid language '${language}'.`)
  return undefined
}

async function recordingOf(form: FormData): Promise<HeardRecording> {
  const file = form.get('file') as File
  const language = form.get('language')
  return {
    bytes: new Uint8Array(await file.arrayBuffer()),
    fileName: file.name,
    mime: file.type,
    model: String(form.get('model')),
    ...(language !== null && { language: String(language) }),
  }
}

/** Quotes the given key, as some compatible servers do. */
const unauthorized = (headers: Headers): ProviderReply => {
  const given = headers.get('authorization')?.replace(/^Bearer /, '')
  return given === undefined ? refusal(401, "You didn't provide an API key.") : refusal(401, `Incorrect API key provided: ${given}.`)
}

const refusal = (status: number, message: string): ProviderReply => ({
  status,
  body: { error: { message, type: 'invalid_request_error', param: null, code: null } },
})

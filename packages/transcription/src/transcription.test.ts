import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SpawnRequest, SpawnResult, Transcribe } from '@sluice/sdk'
import { abortedOnArrival } from '@sluice/testkit/fake-provider'
import { type TestHostOverrides, testHost, throwingHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { transcriptionSection } from './config.ts'
import feature from './index.ts'
import { recordingName } from './recording.ts'
import { startTranscriptionFake, type TranscriptionFake } from './testing/fake.ts'
import { realSpawn, realWorkspace } from './testing/real-folder.ts'

const KEY = 'canary-key-0123456789'
const MIB = 1_048_576
const bytes = (text: string) => new TextEncoder().encode(text)
const recording = { bytes: bytes('turn on the light'), name: '../voice "1".oga', mime: 'audio/ogg; codecs=opus' }

const parse = (config: object) => v.parse(transcriptionSection.schema, { enabled: true, ...config })

function setUp(config: object, overrides: TestHostOverrides = {}) {
  const host = testHost({ fetch, ...overrides })
  const { services } = feature.build(host, parse(config))
  const abort = new AbortController()
  const run = (audio: Parameters<Transcribe>[0] = recording) => {
    if (!services?.transcribe) throw new Error('the feature offers no service')
    return services.transcribe(audio, { signal: abort.signal, workspace: host.by.workspace })
  }
  return { host, abort, run }
}

describe('the feature', () => {
  test('is off unless it is enabled', () => {
    expect(feature.build(throwingHost(), v.parse(transcriptionSection.schema, {}))).toEqual({ disabledReason: '`enabled` is false' })
    expect(feature.build(throwingHost(), parse({ api_key: KEY }))).toMatchObject({ services: { transcribe: expect.any(Function) } })
  })

  test('has the documented defaults', () => {
    expect(v.parse(transcriptionSection.schema, {})).toEqual({
      enabled: false,
      api_url: 'https://api.openai.com/v1',
      model: 'whisper-1',
      timeout_secs: 120,
      max_mb: 25,
    })
  })

  test.each<[name: string, config: object]>([
    ['a command that is not a list', { command: 'whisper {file}' }],
    ['an empty command', { command: [] }],
    ['a command without {file}', { command: ['whisper'] }],
    ['a program with a relative path', { command: ['./whisper', '{file}'] }],
    ['a URL that is not http', { api_url: 'ftp://x.test' }],
    ['credentials in the URL', { api_url: 'https://a:b@x.test/v1' }],
    ['a query in the URL', { api_url: 'https://x.test/v1?a=b' }],
    ['a timeout of 0', { timeout_secs: 0 }],
    ['max_mb over the limit', { max_mb: 101 }],
    ['an empty key', { api_key: '' }],
  ])('rejects %s', (_name, config) => {
    expect(v.safeParse(transcriptionSection.schema, config).success).toBe(false)
  })

  test('rejects an incomplete configuration without quoting the key', () => {
    const messages = (config: object) => v.safeParse(transcriptionSection.schema, config).issues?.map(({ message }) => message)
    expect(messages({ enabled: true })).toEqual([expect.stringContaining('without api_key')])
    expect(messages({ enabled: true, api_key: ' ' })).toHaveLength(1)
    expect(messages({ enabled: true, api_key: `${KEY}\nx` })).toEqual([expect.stringContaining('printable ASCII characters only')])
    const works = [{ api_key: `${KEY}\n` }, { api_url: 'http://127.0.0.1:9/v1' }, { command: ['whisper', '{file}'] }]
    for (const config of works) expect(messages({ enabled: true, ...config })).toBeUndefined()
    expect(messages({})).toBeUndefined()
  })

  test.each([
    [{ name: 'a.mp3', mime: 'audio/ogg; codecs=opus' }, 'recording.ogg'],
    [{ name: 'a', mime: 'audio/x-M4A' }, 'recording.m4a'],
    [{ name: 'a', mime: 'audio/opus' }, 'recording.ogg'],
    [{ name: 'a.WAV', mime: 'application/octet-stream' }, 'recording.wav'],
    [{ name: 'a.mp3' }, 'recording.mp3'],
    [{ name: '-rf.mp3/../x y', mime: 'audio/"' }, 'recording.ogg'],
  ])('names the recording %j %s', ({ name, mime }: { name: string; mime?: string }, fileName) => {
    expect(recordingName(name, mime)).toBe(fileName)
  })
})

describe('ServiceTranscriber', () => {
  let fake: TranscriptionFake
  beforeEach(async () => {
    fake = await startTranscriptionFake({ apiKey: KEY, hear: (upload) => new TextDecoder().decode(upload.bytes.subarray(0, 100)) })
  })
  afterEach(() => fake.close())
  const withFake = (config: object = {}) => setUp({ api_url: `${fake.url}/v1`, api_key: KEY, ...config })

  test('sends a recording as a form and returns its text', async () => {
    expect(await withFake({ language: 'en', api_url: `${fake.url}/v1/` }).run()).toBe('turn on the light')
    expect(fake.heard).toEqual([
      { bytes: recording.bytes, fileName: 'recording.ogg', mime: 'audio/ogg; codecs=opus', model: 'whisper-1', language: 'en' },
    ])
  })

  test('sends no key unless one is configured', async () => {
    const own = await startTranscriptionFake({ apiKey: null, models: ['small'], hear: () => '  hello \n' })
    expect(await setUp({ api_url: `${own.url}/v1`, model: 'small' }).run()).toBe('hello')
    expect(own.requests[0]?.headers.get('authorization')).toBeNull()
    await own.close()
  })

  test.each<[name: string, mime: string | undefined]>([
    ['a.txt', undefined],
    ['a', 'audio/amr'],
  ])('permanently refuses a file that is not audio: %s %s', async (name, mime) => {
    const audio = { bytes: bytes('x'), name, ...(mime && { mime }) }
    await expect(withFake().run(audio)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('Invalid file format'),
    })
  })

  test('refuses an empty recording and one over max_mb without a request', async () => {
    const { run } = withFake({ max_mb: 1 })
    for (const size of [0, MIB + 1]) {
      await expect(run({ bytes: new Uint8Array(size), name: 'a.ogg' })).rejects.toMatchObject({ code: 'invalid_request' })
    }
    await run({ bytes: new Uint8Array(MIB), name: 'a.ogg' })
    expect(fake.requests).toHaveLength(1)
  })

  test('is unavailable with a refused key and does not show the key', async () => {
    const { run, host } = withFake({ api_key: 'another-canary' })
    const error = await run().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('Incorrect API key provided: [secret]') })
    expect(JSON.stringify([String(error), host.logs])).not.toContain('another-canary')
  })

  test.each([403, 408, 429, 500, 502, 503])('is unavailable after status %i', async (status) => {
    fake.fail({ fault: 'status', status, headers: { 'retry-after': '7' } })
    await expect(withFake().run()).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('passes on Retry-After of the service', async () => {
    fake.fail({ fault: 'status', status: 429, headers: { 'retry-after': '7' } })
    await expect(withFake().run()).rejects.toMatchObject({ retryAfterSecs: 7 })
  })

  test.each(['lost', 'reset', 'garbage', 'cut'] as const)('is unavailable after an answer with fault %s', async (fault) => {
    fake.fail({ fault })
    await expect(withFake().run()).rejects.toMatchObject({ code: 'unavailable' })
    expect(await withFake().run()).toBe('turn on the light')
  })

  test('is unavailable after an answer without a text', async () => {
    fake.fail({ fault: 'status', status: 200, body: { words: [] } })
    await expect(withFake().run()).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('follows no redirect, so that no other host receives the key', async () => {
    fake.fail({ fault: 'status', status: 307, headers: { location: `${fake.url}/v1/audio/transcriptions` } })
    await expect(withFake().run()).rejects.toMatchObject({ code: 'invalid_request' })
    expect(fake.requests).toHaveLength(1)
  })

  test('is unavailable when the service does not answer within timeout_secs', async () => {
    fake.fail({ fault: 'hang' })
    await expect(withFake({ timeout_secs: 1 }).run()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('1 s'),
    })
  })

  test('ends the request when it is aborted', async () => {
    const { run, abort } = withFake()
    abortedOnArrival(fake).addEventListener('abort', () => abort.abort())
    await expect(run()).rejects.toMatchObject({ code: 'aborted' })
  })
})

describe('CommandTranscriber', () => {
  const done: SpawnResult = { exitCode: 0, signal: null, timedOut: false, stdout: '', stderr: '', truncated: false, sandbox: 'none' }
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transcription-'))
  })
  afterEach(() => {
    rmSync(folder, { recursive: true })
    vi.unstubAllEnvs()
  })
  const sh = (script: string, config: object = {}) =>
    setUp({ command: ['sh', '-c', script, 'sh', '{file}'], ...config }, { workspace: realWorkspace(folder), spawn: realSpawn })

  test('passes the recording to the program and returns its output', async () => {
    expect(await sh('printf "  %s: " "$1"; tr a-z A-Z < "$1"').run()).toBe('recording.ogg: TURN ON THE LIGHT')
  })

  test('removes its folder with all files of the program', async () => {
    const litter = 'mkdir -p a/b; for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4 5 6 7 8 9 0 a b; do : > "a/b/$i$j"; done; done;'
    await sh(litter).run()
    await expect(sh(`${litter} exit 3`).run()).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(sh(`${litter} rm "$1"; kill -9 $$`).run()).rejects.toMatchObject({ code: 'unavailable' })
    expect(readdirSync(folder)).toEqual([])
  })

  test('starts the program in its own writable folder without network', async () => {
    const requests: SpawnRequest[] = []
    vi.stubEnv('PATH', '/usr/bin:.::/workspace/bin:/workspace:/bin')
    vi.stubEnv('SVC_TRANSCRIPTION_API_KEY', KEY)
    const spawn = async (request: SpawnRequest) => {
      requests.push(request)
      return { ...done, stdout: 'text' }
    }
    const { run, abort } = setUp({ command: ['whisper', '--in={file}', '{file}'], timeout_secs: 7 }, { spawn })
    await run()
    const [request] = requests
    expect(request).toEqual({
      file: 'whisper',
      args: ['--in=recording.ogg', 'recording.ogg'],
      cwd: expect.stringMatching(/^\/workspace\/\.transcription-[0-9a-f-]{36}$/),
      env: { PATH: '/usr/bin:/bin', HOME: expect.any(String), LANG: expect.any(String) },
      policy: { writable: [request?.cwd], network: false },
      timeoutMs: 7000,
      outputBytesMax: MIB,
      signal: abort.signal,
    })
    await run()
    expect(requests[1]?.cwd).not.toBe(request?.cwd)
  })

  test('reports the last line that a failed program wrote to stderr', async () => {
    await expect(sh('echo first >&2; echo "no such format" >&2; exit 3').run()).rejects.toMatchObject({
      code: 'invalid_request',
      message: "'sh' ended with exit code 3: no such format",
    })
  })

  test('is unavailable when the program is missing', async () => {
    const { run } = setUp({ command: ['no-such-program', '{file}'] }, { workspace: realWorkspace(folder), spawn: realSpawn })
    await expect(run()).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('no-such-program') })
    expect(readdirSync(folder)).toEqual([])
  })

  test('throws invalid_request when the program takes too long', async () => {
    const spawn = async () => ({ ...done, exitCode: null, signal: 'SIGTERM', timedOut: true })
    const { run } = setUp({ command: ['whisper', '{file}'] }, { spawn })
    await expect(run()).rejects.toMatchObject({ code: 'invalid_request', message: "'whisper' took longer than timeout_secs" })
  })

  test('ends the program when it is aborted', async () => {
    const { run, abort } = sh('exec sleep 60')
    const outcome = expect(run()).rejects.toMatchObject({ code: 'aborted' })
    while (readdirSync(folder).length === 0) await new Promise((resolve) => setTimeout(resolve, 2))
    abort.abort()
    await outcome
    expect(readdirSync(folder)).toEqual([])
  })

  test('logs a recording that cannot be removed', async () => {
    const workspace = { ...realWorkspace(folder), remove: () => Promise.reject(new Error('read-only')) }
    const { run, host } = setUp({ command: ['cat', '{file}'] }, { workspace, spawn: realSpawn })
    expect(await run()).toBe('turn on the light')
    expect(host.logs).toMatchObject([{ level: 'warn', message: 'the folder of a program was not removed from the workspace' }])
    expect(readFileSync(join(folder, String(host.logs[0]?.fields.folder), 'recording.ogg'), 'utf8')).toBe('turn on the light')
  })
})

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, type SpokenFormat } from '@sluice/sdk'
import { abortedOnArrival } from '@sluice/testkit/fake-provider'
import { type TestHostOverrides, testHost, throwingHost } from '@sluice/testkit/host'
import { realSpawn, realWorkspace } from '@sluice/transcription/testing'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { speechSection } from './config.ts'
import feature from './index.ts'
import { type SpeechFake, startSpeechFake } from './testing/index.ts'

const KEY = 'canary-key-0123456789'
const parse = (config: object) => v.parse(speechSection.schema, { enabled: true, ...config })

function setUp(config: object, overrides: TestHostOverrides = {}) {
  const host = testHost({ fetch, ...overrides })
  const { services } = feature.build(host, parse(config))
  const abort = new AbortController()
  const say = async (text: string, formats: readonly SpokenFormat[] = ['wav']) => {
    if (!services?.speak) throw new Error('the feature offers no service')
    return services.speak(text, { formats, signal: abort.signal, workspace: host.by.workspace })
  }
  return { host, abort, say }
}

describe('the feature', () => {
  test('is off unless it is enabled', () => {
    expect(feature.build(throwingHost(), v.parse(speechSection.schema, {}))).toEqual({ disabledReason: '`enabled` is false' })
    expect(feature.build(throwingHost(), parse({ api_key: KEY }))).toMatchObject({ services: { speak: expect.any(Function) } })
  })

  test.each<[name: string, config: object]>([
    ['a command without {text}', { command: ['flite', '-o', '{file}'] }],
    ['a command without {file}', { command: ['flite', '-f', '{text}'] }],
    ['a program with a relative path', { command: ['./flite', '{text}', '{file}'] }],
    ['a URL that is not http', { api_url: 'ftp://x.test' }],
    ['an unknown format', { command: ['flite', '{text}', '{file}'], command_format: 'mp3' }],
    ['the public service without a key', {}],
  ])('rejects %s', (_name, config) => {
    expect(() => parse(config)).toThrow()
  })
})

describe('with a service', () => {
  let fake: SpeechFake
  beforeEach(async () => {
    fake = await startSpeechFake({ apiKey: KEY })
  })
  afterEach(() => fake.close())
  const service = (config: object = {}) => setUp({ api_url: fake.apiUrl, api_key: KEY, ...config })

  test('returns the audio in the preferred format', async () => {
    const { say } = service({ voice: 'nova', model: 'tts-1' })
    const { bytes, ...about } = await say('  Hello.  ')
    expect(about).toEqual({ format: 'wav', mime: 'audio/wav' })
    expect(Buffer.from(bytes.subarray(0, 4)).toString()).toBe('RIFF')
    expect(await say('Hello again.', ['ogg', 'wav'])).toMatchObject({ format: 'ogg', mime: 'audio/ogg; codecs=opus' })
    expect(fake.spoken).toEqual(['Hello.', 'Hello again.'])
    expect(fake.requests[0]?.json).toEqual({ model: 'tts-1', voice: 'nova', input: 'Hello.', response_format: 'wav' })
  })

  test('refuses an empty and a long text without a request', async () => {
    const { say } = service({ max_chars: 10 })
    await expect(say(' \n')).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(say('12345678901')).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('max_chars') })
    expect(fake.requests).toEqual([])
  })

  test.each([
    ['an error of the server', { fault: 'status', status: 503 }],
    ['a broken connection', { fault: 'reset' }],
    ['an answer that is no audio', { fault: 'status', status: 200, body: 'not audio' }],
  ] as const)('is unavailable after %s', async (_what, fault) => {
    fake.fail(fault)
    await expect(service().say('Hello.')).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('a refused key is unavailable, and its value is in no message', async () => {
    const { say } = setUp({ api_url: fake.apiUrl, api_key: 'another-canary' })
    const error = await say('Hello.').catch((reason: unknown) => reason as Error)
    expect(error).toMatchObject({ code: 'unavailable' })
    expect(String(error)).not.toContain('another-canary')
  })

  test('ends when it is aborted', async () => {
    const { say, abort } = service()
    abortedOnArrival(fake).addEventListener('abort', () => abort.abort())
    await expect(say('Hello.')).rejects.toMatchObject({ code: 'aborted' })
  })
})

describe('with a command', () => {
  let root: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'sluice-speech-'))
  })
  afterEach(() => rmSync(root, { recursive: true }))
  /** A workspace that also reads. */
  const workspace = () => ({
    ...realWorkspace(root),
    read: (path: string) =>
      readFile(join(root, path)).catch(() => {
        throw new AppError('not_found', `${path} does not exist`)
      }),
  })
  const run = (script: string, config: object = {}) =>
    setUp({ command: ['sh', '-c', script, 'sh', '{text}', '{file}'], ...config }, { workspace: workspace(), spawn: realSpawn })

  test('the program reads the text from a file and writes the audio, and nothing remains', async () => {
    const { say } = run('{ printf RIFF; cat "$1"; } > "$2"')
    const { bytes, format } = await say('-n; $(date)')
    expect([Buffer.from(bytes).toString(), format]).toEqual(['RIFF-n; $(date)', 'wav'])
    expect(readdirSync(root)).toEqual([])
  })

  test('the program writes the format that is configured', async () => {
    const { say } = run('{ printf OggS; cat "$1"; } > "$2"', { command_format: 'ogg' })
    expect(await say('Hello.', ['wav', 'ogg'])).toMatchObject({ format: 'ogg' })
    await expect(say('Hello.', ['wav'])).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('command_format'),
    })
  })

  test.each([
    ['fails', 'echo no voice >&2; exit 3', 'invalid_request', 'exit code 3: no voice'],
    ['writes no file', 'true', 'unavailable', 'wrote no file'],
    ['writes something else', 'echo text > "$2"', 'unavailable', 'wav'],
  ])('reports a program that %s', async (_what, script, code, message) => {
    await expect(run(script).say('Hello.')).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
  })
})

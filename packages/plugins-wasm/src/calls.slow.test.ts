import { AppError, type Host } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pluginsSection } from './config.ts'
import { parseManifest } from './manifest.ts'
import { PluginThreads } from './plugin-threads.ts'
import { pluginTool } from './plugin-tool.ts'
import { compileBehaviours } from './testing/compile.ts'
import { manifestFor } from './testing/new-plugin.ts'

let plain: Uint8Array
let networked: Uint8Array
const open: PluginThreads[] = []

beforeAll(async () => {
  plain = await compileBehaviours(false)
  networked = await compileBehaviours(true)
})

afterAll(async () => {
  await Promise.all(open.map((threads) => threads.close()))
})

const arrange = ({
  limits = {},
  hosts,
  publicFetch = async () => new Response(''),
}: {
  limits?: object
  hosts?: string[]
  publicFetch?: Host['publicFetch']
} = {}) => {
  const host = testHost({ publicFetch })
  const config = v.parse(pluginsSection.schema, { limits })
  const threads = new PluginThreads(host.clock, config.limits)
  open.push(threads)
  const module = hosts ? networked : plain
  let loads = 0
  const toolOf = (name: string) => {
    const manifest = parseManifest(Buffer.from(JSON.stringify(manifestFor(module, { name, permissions: hosts ? ['network'] : [] }))))
    const load = async () => {
      loads++
      return module
    }
    return pluginTool({ manifest, hosts: hosts ?? [], load }, threads, host.publicFetch)
  }
  const tool = toolOf('behave')
  const run = (input: string, signal?: AbortSignal, of = tool) => of.run({ input }, toolContext(signal))
  return { host, threads, run, tool, toolOf, loads: () => loads }
}

describe('a call of a plugin', () => {
  test('passes any text in and out', async () => {
    const { run } = arrange()
    for (const text of ['hello', '', '\ufeffß→🙂', 'a'.repeat(100_000), '\0']) expect(await run(text)).toBe(text)
    expect(await run('\ud800')).toBe('\ufffd')
  })

  test('each call has a new instance in the same worker', async () => {
    const { run, loads } = arrange()
    expect(await run('count')).toBe('1')
    expect(await run('count')).toBe('1')
    expect(loads()).toBe(1)
  })

  test.each([
    ['trap', /^The plugin failed: unreachable/],
    ['throw', /^The plugin failed: this is why/],
    ['recurse', /^The plugin failed: Maximum call stack/],
    ['outside', /pointed outside of its memory/],
    ['long', /returned 1073741824 bytes|pointed outside/],
    ['bytes', /not UTF-8/],
  ])('a call that fails (%s) is an error, and the next call works', async (input, message) => {
    const { run, loads } = arrange({ limits: { fuel: 100_000_000 } })
    const error = await run(input).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AppError)
    expect((error as AppError).message).toMatch(message)
    expect(await run('again')).toBe('again')
    expect(loads()).toBe(1)
  })

  test('an endless loop uses up its fuel', async () => {
    const { run } = arrange({ limits: { fuel: 1_000_000 } })
    await expect(run('loop')).rejects.toMatchObject({ code: 'upstream', message: 'The plugin used up its fuel' })
    expect(await run('x')).toBe('x')
  })

  test('an endless loop ends at its time limit, and the next call has a new worker', async () => {
    const { run, host, loads } = arrange({ limits: { time_ms: 5000, fuel: Number.MAX_SAFE_INTEGER } })
    await run('warm')
    const running = run('loop')
    const outcome = expect(running).rejects.toMatchObject({ code: 'upstream_timeout', message: 'The plugin took longer than 5000 ms' })
    await host.advance(4999)
    await host.advance(1)
    await outcome
    expect(await run('x')).toBe('x')
    expect(loads()).toBe(2)
  })

  test('memory grows only up to its limit', async () => {
    expect(await arrange({ limits: { memory_mb: 3 } }).run('grow')).toBe('3')
  })

  test('refuses input and output over their limits', async () => {
    const { run } = arrange({ limits: { input_kb: 2, output_kb: 1 } })
    await expect(run('x'.repeat(2049))).rejects.toMatchObject({ message: 'The plugin takes at most 2048 bytes of input' })
    await expect(run('x'.repeat(1025))).rejects.toMatchObject({ message: 'The plugin returned 1025 bytes, and 1024 are allowed' })
    expect(await run('x'.repeat(1024))).toHaveLength(1024)
  })

  test('an abort ends the call, before and while the plugin runs', async () => {
    const { run } = arrange({ limits: { fuel: Number.MAX_SAFE_INTEGER } })
    const abort = new AbortController()
    await run('warm')
    const running = run('loop', abort.signal)
    abort.abort()
    await expect(running).rejects.toMatchObject({ code: 'aborted' })
    await expect(run('x', AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' })
  })

  test('runs at most `instances` calls in parallel, and the waiting calls in order', async () => {
    const { run, host, toolOf } = arrange({ limits: { instances: 2, time_ms: 1000, fuel: Number.MAX_SAFE_INTEGER } })
    const other = toolOf('other')
    const looping = [run('loop'), run('loop')].map((call) => call.catch(() => 'ended'))
    const waiting = [run('a'), run('b', undefined, other), run('c')]
    const abort = new AbortController()
    const leaving = expect(run('d', abort.signal)).rejects.toMatchObject({ code: 'aborted' })
    abort.abort()
    await leaving
    // The workers, and with them the time limits, start a moment after the calls.
    while (host.clock.sleeping < 2) await new Promise((resolve) => setImmediate(resolve))
    await host.advance(1000)
    expect(await Promise.all([...looping, ...waiting])).toEqual(['ended', 'ended', 'a', 'b', 'c'])
  })

  test('refuses a call while too many others wait', async () => {
    const { run, threads } = arrange({ limits: { instances: 1, fuel: Number.MAX_SAFE_INTEGER } })
    const calls = Array.from({ length: 65 }, () => run('loop').catch((error: AppError) => error.code))
    await expect(run('x')).rejects.toMatchObject({ code: 'unavailable' })
    await threads.close()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['aborted']))
    await expect(run('x')).rejects.toMatchObject({ code: 'aborted' })
  })

  test('refuses a call that starts during close', async () => {
    const { threads, run } = arrange()
    await run('warm')
    const called = run('late')
    await threads.close()
    await expect(called).rejects.toMatchObject({ code: 'aborted' })
  })

  test('ends a worker that is idle for too long', async () => {
    const { run, host, loads } = arrange()
    await run('x')
    await host.advance(300_000)
    expect(await run('x')).toBe('x')
    expect(loads()).toBe(2)
    await host.advance(299_000)
    expect(await run('x')).toBe('x')
    expect(loads()).toBe(2)
  })

  test('the event loop continues while a plugin computes', async () => {
    const { run } = arrange({ limits: { fuel: Number.MAX_SAFE_INTEGER } })
    const abort = new AbortController()
    await run('warm')
    const running = run('loop', abort.signal).catch(() => 'ended')
    for (let ticks = 0; ticks < 100; ticks++) await new Promise((resolve) => setImmediate(resolve))
    abort.abort()
    expect(await running).toBe('ended')
  })

  test('sends a request to a granted host and returns the answer', async () => {
    const seen: unknown[] = []
    const { run, tool } = arrange({
      hosts: ['api.example.com'],
      publicFetch: async (url, init) => {
        init?.admit?.(new URL(url))
        seen.push([url, init?.method, init?.headers, init?.body])
        return new Response('found', { status: 201, headers: { 'x-own': 'y' } })
      },
    })
    expect(tool.risk).toBe('execute')
    const request = { method: 'POST', url: 'https://api.example.com/a', headers: { 'x-a': 'b' }, body: 'c' }
    const answer = JSON.parse(await run(`http ${JSON.stringify(request)}`))
    expect(answer).toEqual({ status: 201, headers: { 'content-type': 'text/plain;charset=UTF-8', 'x-own': 'y' }, body: 'found' })
    expect(seen).toEqual([['https://api.example.com/a', 'POST', { 'x-a': 'b' }, 'c']])
    for (const url of ['https://example.com/', 'https://api.example.com.evil.test/']) {
      expect(JSON.parse(await run(`http ${JSON.stringify({ url })}`))).toEqual({
        error: `The plugin has no grant for '${new URL(url).hostname}'`,
      })
    }
    for (const bad of ['', '[]', '{"url":1}', '{"url":"https://api.example.com/","more":1}']) {
      expect(JSON.parse(await run(`http ${bad}`)).error).toMatch(/^The request must have the form/)
    }
  })

  const admitted: Host['publicFetch'] = async (url, init) => {
    init?.admit?.(new URL(url))
    return new Response('')
  }

  test('a plugin with the network permission but no grant sends no request', async () => {
    const { run, tool } = arrange({ hosts: [], publicFetch: admitted })
    expect(tool.risk).toBe('read')
    expect(JSON.parse(await run('http {"url":"https://example.com/"}'))).toEqual({ error: "The plugin has no grant for 'example.com'" })
  })

  test('the time limit includes requests and aborts a running one', async () => {
    let aborted = false
    const requested = Promise.withResolvers<void>()
    const { run, host } = arrange({
      hosts: ['example.com'],
      limits: { time_ms: 1000 },
      publicFetch: (_url, init) => {
        requested.resolve()
        return new Promise((_, reject) => {
          init?.signal?.addEventListener('abort', () => {
            aborted = true
            reject(new Error('aborted'))
          })
        })
      },
    })
    const outcome = expect(run('http {"url":"https://example.com/"}')).rejects.toMatchObject({ code: 'upstream_timeout' })
    await requested.promise
    await host.advance(1000)
    await outcome
    expect(aborted).toBe(true)
  })

  test('refuses an invalid module at the call', async () => {
    const { threads } = arrange()
    const broken = { name: 'broken', hasNetwork: false, load: async () => new Uint8Array([1, 2, 3]) }
    const call = threads.run(broken, 'x', { signal: new AbortController().signal, sendRequest: async () => '' })
    await expect(call).rejects.toMatchObject({ message: 'The plugin is not a WebAssembly module' })
  })

  test('runs a thousand calls in a row', async () => {
    const { run } = arrange()
    for (let call = 0; call < 1000; call++) await run('x')
    expect(await run('count')).toBe('1')
  })
})

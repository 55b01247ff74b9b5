import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { browserSection } from '../config.ts'
import { type FakeSidecar, startSidecar } from '../testing/sidecar.ts'
import { createWorld } from '../testing/world.ts'

const API_KEY = 'key-of-the-sidecar'

let sidecar: FakeSidecar
beforeEach(async () => {
  sidecar = await startSidecar()
})
afterEach(() => sidecar.close())

const arrange = (computer_use: object = {}) =>
  createWorld({
    config: {
      backend: 'computer_use',
      allowed_domains: ['example.com'],
      session_name: 'desk',
      computer_use: { endpoint: `${sidecar.url}/v1/actions`, api_key: API_KEY, ...computer_use },
    },
    names: { 'example.com': ['93.184.215.14'], 'in.example.com': ['10.0.0.1'] },
    host: { fetch },
  })

describe('ComputerUseDriver', () => {
  test('sends an action with the policy that the sidecar enforces', async () => {
    sidecar.answer = { body: { data: { clicked: true } } }
    const world = arrange({ window_allowlist: ['Editor'], max_coordinate_x: 100, max_coordinate_y: 50 })
    expect(JSON.parse(await world.run({ action: 'mouse_click', x: 100, y: 50 }))).toEqual({ clicked: true })
    expect(sidecar.requests).toEqual([
      {
        method: 'POST',
        path: '/v1/actions',
        authorization: `Bearer ${API_KEY}`,
        body: {
          action: 'mouse_click',
          params: { x: 100, y: 50, button: 'left' },
          policy: { allowed_domains: ['example.com'], window_allowlist: ['Editor'], max_coordinate_x: 100, max_coordinate_y: 50 },
          metadata: { session_name: 'desk', client: 'client', source: 'sluice' },
        },
      },
    ])
  })

  test.each([
    { action: 'mouse_move', x: 101, y: 1 },
    { action: 'mouse_click', x: 1, y: 51 },
    { action: 'mouse_drag', from_x: 1, from_y: 1, to_x: 101, to_y: 1 },
    { action: 'mouse_drag', from_x: 1, from_y: 51, to_x: 1, to_y: 1 },
  ])('refuses %j, whose coordinates are out of bounds, before it is sent', async (input) => {
    const world = arrange({ max_coordinate_x: 100, max_coordinate_y: 50 })
    await expect(world.run(input)).rejects.toMatchObject({ code: 'forbidden' })
    expect(sidecar.requests).toEqual([])
  })

  test('refuses a negative coordinate', async () => {
    await expect(arrange().run({ action: 'mouse_move', x: -1, y: 0 })).rejects.toThrow()
  })

  test('sends only URLs that may be opened', async () => {
    const world = arrange()
    for (const url of ['https://example.org/', 'http://in.example.com/', 'file:///etc/passwd', 'http://example.com@127.0.0.1/']) {
      await expect(world.run({ action: 'open', url })).rejects.toMatchObject({ code: 'forbidden' })
    }
    await expect(world.run({ action: 'screenshot', path: '/etc/x.png' })).rejects.toMatchObject({ code: 'invalid_request' })
    expect(sidecar.requests).toEqual([])
    await world.run({ action: 'open', url: 'https://example.com/' })
    expect(sidecar.requests).toHaveLength(1)
  })

  test.each<[answer: FakeSidecar['answer'], text: string]>([
    [{ body: {} }, '"ok": true'],
    [{ body: { success: true, data: 'a text' } }, 'a text'],
    [{ text: 'no JSON' }, 'no JSON'],
    [{ text: '' }, '"ok": true'],
    [{ body: { data: `it echoes ${API_KEY}` } }, 'it echoes [secret]'],
  ])('returns the answer %j as %j', async (answer, text) => {
    sidecar.answer = answer
    expect(await arrange().run({ action: 'screen_capture' })).toContain(text)
  })

  test.each<[answer: FakeSidecar['answer'], message: string]>([
    [{ status: 500, text: '' }, 'computer-use sidecar request failed with status 500'],
    [{ status: 302, text: '', location: 'http://evil.test/' }, 'computer-use sidecar request failed with status 302'],
    [{ body: { success: false, error: 'no window' } }, 'no window'],
    [{ status: 400, body: { error: `bad ${API_KEY}` } }, 'bad [secret]'],
    [{ status: 400, body: { error: `${'x'.repeat(295)}${API_KEY}` } }, `${'x'.repeat(295)}[secr`],
  ])('reports the answer %j as the failure %j', async (answer, message) => {
    sidecar.answer = answer
    await expect(arrange().run({ action: 'screen_capture' })).rejects.toMatchObject({ code: 'upstream', message })
    expect(sidecar.requests).toHaveLength(1)
  })

  test('handles a time limit, an abort and a sidecar that does not answer', async () => {
    sidecar.answer = 'never'
    await expect(arrange({ timeout_ms: 50 }).run({ action: 'screen_capture' })).rejects.toMatchObject({ code: 'upstream_timeout' })
    await expect(arrange().run({ action: 'screen_capture' }, { signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
      code: 'aborted',
    })
    const absent = arrange({ endpoint: 'http://127.0.0.1:1/' })
    await expect(absent.run({ action: 'screen_capture' })).rejects.toMatchObject({ code: 'upstream' })
    expect(await absent.check()).toMatchObject([{ status: 'fail' }])
    sidecar.answer = { body: {} }
    expect(await arrange().check()).toMatchObject([{ status: 'ok' }])
  })

  test.each<[endpoint: string, remote: boolean, isAllowed: boolean]>([
    ['http://127.0.0.1:8787/v1/actions', false, true],
    ['http://localhost:8787/', false, true],
    ['http://[::1]:8787/', false, true],
    ['http://192.168.1.9/', false, true],
    ['http://2130706433/', false, true],
    ['https://93.184.215.14/', false, false],
    ['https://sidecar.example/', false, false],
    ['https://sidecar.example/', true, true],
    ['http://sidecar.example/', true, false],
    ['http://localhost.example/', true, false],
    ['ftp://127.0.0.1/', true, false],
    ['http://user@127.0.0.1/', true, false],
    ['nonsense', true, false],
  ])('the endpoint %s with allow_remote_endpoint %j is allowed: %j', (endpoint, allow_remote_endpoint, isAllowed) => {
    expect(v.safeParse(browserSection.schema, { computer_use: { endpoint, allow_remote_endpoint } }).success).toBe(isAllowed)
  })
})

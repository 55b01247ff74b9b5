import type { Hardware, HardwareBoard, RobotStatus } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()
const NOON = '2026-01-01T12:00:00.000Z'

const board: HardwareBoard = {
  name: 'board_a0',
  title: 'board_a (RP2040)',
  transport: 'sim',
  path: null,
  connected: true,
  holder: { client: 'device:phone', untilMs: null },
  pins: [{ pin: '25', client: 'device:phone', untilMs: Date.parse(NOON) }],
}
const robot: RobotStatus = {
  simulated: true,
  state: 'moving',
  reason: null,
  estopPressed: false,
  touching: [],
  ways: [{ way: 'ahead', metres: null, sight: 'seen' }],
  sensors: [{ name: 'lidar', ageMs: 3 }],
  holder: null,
}

async function arrange(parts: readonly { readonly id: string; readonly hardware?: Hardware; readonly state?: string }[]) {
  const instances = parts.map(({ id, hardware, state = 'ready' }) => ({
    feature: { id },
    parts: hardware ? { hardware } : {},
    state: () => state,
  }))
  const made = gateway({ snapshot: { instances: instances as never } })
  const { token } = await made.pair('o')
  const call = async (method: string, path: string) => {
    const response = await made.request(path, { method, headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, body: (await response.json()) as unknown }
  }
  return { ...made, call }
}

test('boards and robots of ready features are listed with the clients that have them', async () => {
  const { call } = await arrange([
    { id: 'hardware-boards', hardware: { boards: async () => [board] } },
    { id: 'hardware-safety', hardware: { robot: async () => robot } },
    { id: 'hardware-sbc', hardware: { boards: async () => [board] }, state: 'failed' },
    { id: 'tool-files' },
  ])
  expect((await call('GET', '/api/hardware')).body).toEqual({
    boards: [
      {
        ...board,
        feature: 'hardware-boards',
        holder: { client: 'device:phone', until: null },
        pins: [{ pin: '25', client: 'device:phone', until: NOON }],
      },
    ],
    robots: [
      {
        feature: 'hardware-safety',
        simulated: true,
        state: 'moving',
        reason: null,
        estop_pressed: false,
        touching: [],
        ways: [{ way: 'ahead', metres: null, sight: 'seen' }],
        sensors: [{ name: 'lidar', age_ms: 3 }],
        holder: null,
      },
    ],
  })
})

test('an operator stops and resets the robot under their own name', async () => {
  const calls: string[] = []
  const { call } = await arrange([
    {
      id: 'hardware-safety',
      hardware: { stop: async (by) => void calls.push(`stop ${by}`), reset: async (by) => void calls.push(`reset ${by}`) },
    },
  ])
  expect((await call('POST', '/api/hardware/stop')).body).toEqual({ stopped: true })
  expect((await call('POST', '/api/hardware/reset')).body).toEqual({ reset: true })
  expect(calls).toEqual([expect.stringMatching(/^stop device:/), expect.stringMatching(/^reset device:/)])
})

test('without a robot there is nothing to stop', async () => {
  const { call } = await arrange([{ id: 'hardware-boards', hardware: { boards: async () => [] } }])
  for (const path of ['/api/hardware/stop', '/api/hardware/reset']) expect((await call('POST', path)).status).toBe(404)
  expect((await call('GET', '/api/hardware')).body).toEqual({ boards: [], robots: [] })
})

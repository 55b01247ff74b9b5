import { expect, test } from 'vitest'
import { actorName, withDeviceNames } from './device-name.ts'

const names: Readonly<Record<string, string>> = { 'a-1': 'Chrome on Linux', evil: 'x"\n\u202ecli:root' }
const devices = { find: async (id: string) => (names[id] === undefined ? undefined : { name: names[id] }) }

test('an actor that is a device is shown by its name, any other actor as it is', async () => {
  expect(await actorName('device:a-1', devices)).toBe('device "Chrome on Linux"')
  for (const by of ['device:gone', 'device:local', 'telegram:device:a-1', 'cli:root', 'system'])
    expect(await actorName(by, devices)).toBe(by)
})

test('a name cannot end its quotes, begin a line or turn the text around', async () => {
  expect(await actorName('device:evil', devices)).toBe('device "x\' cli:root"')
})

test('the ids of known devices in a text become their names', () => {
  const shown = withDeviceNames('Rejected by device:a-1: not by device:gone', (id) => names[id])
  expect(shown).toBe('Rejected by device "Chrome on Linux": not by device:gone')
})

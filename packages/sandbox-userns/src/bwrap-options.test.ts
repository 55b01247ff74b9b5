import { describe, expect, test } from 'vitest'
import { bwrapOptions } from './bwrap-options.ts'

const view = { system: [], names: [], hidden: [] }
const options = (devices?: readonly string[]) =>
  bwrapOptions({ cwd: '/w' }, { writable: ['/w'], network: false, ...(devices && { devices }) }, view, {}).join(' ')

describe('bwrapOptions', () => {
  test('adds the devices of the policy to private devices, then makes /dev read-only', () => {
    expect(options()).not.toMatch(/--dev-bind|\/sys/)
    expect(options(['/dev/bus/usb', '/dev/ttyACM0'])).toMatch(
      /--dev \/dev .*--dev-bind-try \/dev\/bus\/usb \/dev\/bus\/usb --dev-bind-try \/dev\/ttyACM0 \/dev\/ttyACM0 .*--remount-ro \/dev /,
    )
  })

  test('shows /sys read-only if the policy has devices', () => {
    expect(options(['/dev/ttyACM0'])).toContain('--ro-bind /sys /sys')
  })

  test('shows a workspace inside the data directory as writable', () => {
    const inData = { system: ['--ro-bind', '/opt', '/opt'], names: [], hidden: ['/opt/data'] }
    const optionsOf = (writable: string) => bwrapOptions({ cwd: writable }, { writable: [writable], network: false }, inData, {}).join(' ')
    expect(optionsOf('/opt/data/work')).toMatch(
      /--tmpfs \/opt\/data .*--bind \/opt\/data\/work \/opt\/data\/work --remount-ro \/opt\/data --remount-ro \/ /,
    )
    expect(optionsOf('/opt/data')).not.toContain('--tmpfs /opt/data')
  })
})

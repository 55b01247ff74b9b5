import { expect, test } from 'vitest'
import { bwrapOptions } from './bwrap-options.ts'

const view = { system: [], names: [], hidden: [] }
const options = (devices?: readonly string[]) =>
  bwrapOptions({ cwd: '/w' }, { writable: ['/w'], network: false, ...(devices && { devices }) }, view, {}).join(' ')

test('devices are private, but for those of the policy, which come before their folder is closed', () => {
  expect(options()).not.toMatch(/--dev-bind|\/sys/)
  expect(options(['/dev/bus/usb', '/dev/ttyACM0'])).toMatch(
    /--dev \/dev .*--dev-bind-try \/dev\/bus\/usb \/dev\/bus\/usb --dev-bind-try \/dev\/ttyACM0 \/dev\/ttyACM0 .*--remount-ro \/dev /,
  )
})

test('what the kernel says of devices is shown with devices alone, to be read', () => {
  expect(options(['/dev/ttyACM0'])).toContain('--ro-bind /sys /sys')
})

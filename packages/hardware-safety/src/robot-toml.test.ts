import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readTomlFile } from '@sluice/config'
import * as v from 'valibot'
import { afterAll, describe, expect, test } from 'vitest'
import { checkRobot, warningsOf } from './preflight.ts'
import { limitsOf } from './robot-config.ts'
import { robotToml } from './robot-toml.ts'

const folder = mkdtempSync(join(tmpdir(), 'robot-toml-'))
const file = join(folder, 'robot.toml')
afterAll(() => rmSync(folder, { recursive: true }))

const read = (text: string) => {
  writeFileSync(file, text)
  return readTomlFile(file, robotToml)
}
const parse = (toml: object) => v.parse(robotToml, toml)

describe('robot.toml', () => {
  test('has a default for every key', async () => {
    const all = parse({})
    expect(await read('[drive]\nmax_speed = 0.4\n')).toEqual({ ...all, drive: { ...all.drive, max_speed: 0.4 } })
    expect(await readTomlFile(join(folder, 'other.toml'), robotToml)).toBeUndefined()
  })

  test.each([
    ['[drive]\nbackend = "ros2"\n', /robot\.toml:2:11: `drive\.backend` must be one of .*"ros2"/],
    ['[drive]\nmax_sped = 1\n', /robot\.toml:2:1: `drive\.max_sped` is not a known key; did you mean `max_speed`\?/],
    ['[camera]\ndevice = "/dev/video0"\n', /robot\.toml:1:2: `camera` is not a known key/],
    ['[safety]\nconfirm_movement = true\n', /robot\.toml:2:1: `safety\.confirm_movement` is not a known key/],
    ['[drive]\nserial_port = "/dev/../etc/passwd"\n', /robot\.toml:2:15: `drive\.serial_port`/],
    ['[safety]\nmin_obstacle_distance = -1\n', /robot\.toml:2:25: `safety\.min_obstacle_distance`/],
    ['[safety]\nestop_pin = "four"\n', /robot\.toml:2:13: `safety\.estop_pin`/],
    ['[sensors]\nultrasonic_pins = [23]\n', /robot\.toml:2:/],
    ['[drive\n', /robot\.toml:\d+:\d+: this is not valid TOML/],
  ])('refuses %j with line and column', async (text, message) => {
    await expect(read(text)).rejects.toMatchObject({ code: 'config_invalid', message: expect.stringMatching(message) })
  })

  test('accepts mock as an alias of sim', () => {
    expect(parse({ drive: { backend: 'mock' } }).drive.backend).toBe('sim')
  })

  test('gives a real drive no simulated sensors', () => {
    expect(limitsOf(parse({ drive: { backend: 'serial' } })).sensors).toEqual([])
    const { sensors } = limitsOf(parse({ drive: { backend: 'serial' }, sensors: { ultrasonic_pins: [23, 24], ultrasonic_bearing: 90 } }))
    expect(sensors).toEqual([{ name: 'ultrasonic', bearing: Math.PI / 2, halfAngle: expect.closeTo(Math.PI / 12) }])
  })
})

describe('the checks before the robot moves', () => {
  const details = (toml: object) => warningsOf(parse(toml)).map(({ detail }) => detail)
  const gpio_chip = 'pinctrl-rp1'
  const sound = { drive: { backend: 'serial' }, sensors: { gpio_chip, ultrasonic_pins: [23, 24] }, safety: { estop_pin: 4 } }

  test('give no warning for valid settings', () => {
    expect(details(sound)).toEqual([])
  })

  test.each<[object, RegExp]>([
    [{}, /SIMULATED/],
    [{ ...sound, safety: { estop_pin: 4, min_obstacle_distance: 0.09 } }, /less than 0\.1 m/],
    [{ ...sound, safety: { estop_pin: 4, max_drive_duration: 61 } }, /more than 60 s/],
    [{ ...sound, drive: { backend: 'serial', max_speed: 1.1 } }, /more than 1 m\/s/],
    [{ ...sound, safety: {} }, /there is no emergency stop/],
    [{ ...sound, safety: { estop_pin: 4, estop_active: 'low' } }, /broken wire/],
    [{ ...sound, safety: { estop_pin: 4, blind_mode_speed_limit: 0.1 } }, /that no sensor covers/],
    [{ ...sound, sensors: { gpio_chip } }, /it has no range sensor/],
    [{ ...sound, sensors: { ultrasonic_pins: [23, 24] } }, /\/dev\/gpiochip0 may be another chip/],
    [{ ...sound, safety: { estop_pin: 4, bump_sensor_pins: [5, 4] } }, /pin 4 is assigned to two parts/],
    [{ ...sound, sensors: { gpio_chip, ultrasonic_pins: [23, 23] } }, /pin 23 is assigned to two parts/],
  ])('warn of %j', (toml, detail) => {
    expect(details(toml)).toEqual([expect.stringMatching(detail)])
  })

  test('report a missing drive', async () => {
    const findings = await checkRobot(parse({ ...sound, drive: { backend: 'serial', serial_port: '/dev/ttyACM199' } }))
    expect(findings).toContainEqual({
      status: 'fail',
      detail: 'There is no /dev/ttyACM199',
      fix: 'connect the drive, or correct serial_port',
    })
  })

  test.each([
    ['pinctrl-rp1', { status: 'ok', detail: 'the pins are on /dev/gpiochip4' }],
    [
      'pinctrl-rp2',
      {
        status: 'fail',
        detail: "There is no GPIO chip 'pinctrl-rp2'; this machine has: pinctrl-rp1 (/dev/gpiochip4)",
        fix: 'correct gpio_chip',
      },
    ],
    ['/dev/gpiochip199', { status: 'fail', detail: 'There is no /dev/gpiochip199', fix: 'correct gpio_chip' }],
  ])('look for the GPIO chip %s', async (chip, finding) => {
    const config = parse({ ...sound, sensors: { ...sound.sensors, gpio_chip: chip } })
    const openGpio = async () => ({ chips: async () => [{ path: '/dev/gpiochip4', label: 'pinctrl-rp1', lines: 54 }] })
    expect(await checkRobot(config, openGpio)).toContainEqual(finding)
  })
})

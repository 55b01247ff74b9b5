/** Which of the settings an adapter cannot carry out: said wherever its work is shown, never passed over. */
import type { Adapter, SpeedRange } from './adapter.ts'
import type { AdapterSettings } from './config.ts'

/** Sentences without a full stop; those about SPI are told by the call itself, which is refused. */
export function unmetSettings({ i2c_speed_hz, pull_ups, volts }: AdapterSettings, { name, abilities, i2c }: Adapter): readonly string[] {
  const unmet: string[] = []
  if (i2c && i2c_speed_hz !== undefined) {
    const range = abilities.i2cSpeedHz
    if (!range) unmet.push(`${name} has a fixed I2C clock: i2c_speed_hz has no effect`)
    else if (within(i2c_speed_hz, range) !== i2c_speed_hz)
      unmet.push(
        `${name} runs I2C at ${range[0]} to ${range[1]} Hz: ${within(i2c_speed_hz, range)} Hz stands in for i2c_speed_hz = ${i2c_speed_hz}`,
      )
  }
  if (pull_ups && !abilities.pullUps) unmet.push(`${name} has no pull-up resistors that can be switched on: fit some to the bus`)
  if (volts !== undefined && !abilities.volts.includes(volts))
    unmet.push(`${name} cannot be set to ${volts} V: its level is set by its wiring, check it before connecting anything`)
  return unmet
}

export const within = (speedHz: number, [min, max]: SpeedRange): number => Math.min(max, Math.max(min, speedHz))

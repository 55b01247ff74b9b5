/** For `sluice doctor`: which adapters can be reached on this machine, and what is missing to reach the others. */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { checkDevicePath, type DeviceKind } from '@sluice/hardware'
import { AppError, errorText, type Finding } from '@sluice/sdk'
import type { Adapters, Places, PresentAdapter } from './adapters.ts'
import type { AdapterSettings } from './config.ts'
import { type TakenAdapter, takenByKernel } from './find-usb-adapters.ts'
import { CH341A_ID, MCP2221_ID } from './found-adapter.ts'
import { NATIVE_FIX, type Native, type NativePackage } from './native.ts'
import { accessTo } from './open-adapter.ts'
import { groupAccess } from './open-error.ts'

export interface Checking {
  readonly adapters: Adapters
  readonly native: Native
  readonly settings: AdapterSettings
  readonly places: Places
}

export async function checkAdapters({ adapters, native, settings, places }: Checking): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const { i2c, spi, transport } = settings
  const usesPaths = transport === 'auto' || transport === 'linux'
  if (usesPaths && i2c !== undefined) findings.push(await checkPath(native, i2c, 'i2c'))
  if (usesPaths && spi !== undefined) findings.push(await checkPath(native, spi, 'spi'))
  if (transport === 'linux' && i2c === undefined && spi === undefined) findings.push(NOTHING_NAMED)
  const isThere = await adapters.pick().then(
    () => true,
    () => adapters.present().length > 0,
  )
  for (const present of adapters.present()) findings.push(...(await checkAdapter(native, present)))
  if (transport === 'auto') findings.push(...(await takenByKernel(places.sys)).map(taken))
  if (!isThere && findings.length === 0) findings.push({ status: 'ok', detail: 'no I2C/SPI adapter is connected' })
  return findings
}

const NOTHING_NAMED: Finding = {
  status: 'warn',
  detail: "only the kernel's buses are used, and none is named",
  fix: 'name one as i2c or spi under [peripherals.adapter], or use another transport',
}

async function checkPath(native: Native, path: string, kind: Extract<DeviceKind, 'i2c' | 'spi'>): Promise<Finding> {
  const module = kind === 'i2c' ? 'i2c-dev' : 'spidev'
  try {
    await checkDevicePath(path, kind)
  } catch (error) {
    return {
      status: 'fail',
      detail: errorText(error),
      fix: `enable the bus (module ${module}), or change ${kind} under [peripherals.adapter]`,
    }
  }
  const missing = await missingPackage(native, kind === 'i2c' ? 'i2c-bus' : 'spi-device')
  if (missing) return missing
  return (await mayUse(path))
    ? { status: 'ok', detail: `${path} can be used` }
    : { status: 'fail', detail: `no permission for ${path}`, fix: groupAccess(kind) }
}

async function checkAdapter(native: Native, { alias, adapter, found, notes }: PresentAdapter): Promise<readonly Finding[]> {
  const noted = notes.map(
    (note): Finding => ({ status: 'warn', detail: `${alias}: ${note}`, fix: 'change it under [peripherals.adapter]' }),
  )
  if (found.kind === 'linux') return noted
  if (found.kind === 'sim') return [{ status: 'ok', detail: `${alias} is simulated` }, ...noted]
  const missing = await missingPackage(native, found.kind === 'mcp2221' ? 'node-hid' : 'usb')
  if (missing) return [missing, ...noted]
  const reached = (await mayUse(found.path)) || !found.path.startsWith('/dev/')
  const id = found.kind === 'mcp2221' ? MCP2221_ID : CH341A_ID
  const state: Finding = reached
    ? { status: 'ok', detail: `${alias}: ${adapter.name} at ${found.path} can be used` }
    : { status: 'fail', detail: `${alias}: no permission for ${adapter.name} at ${found.path}`, fix: accessTo(id) }
  return [state, ...noted]
}

async function missingPackage(native: Native, name: NativePackage): Promise<Finding | undefined> {
  try {
    await native.require(name)
    return undefined
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { status: 'fail', detail: error.message, fix: NATIVE_FIX[name] }
  }
}

const taken = ({ name, driver, key }: TakenAdapter): Finding => ({
  status: 'warn',
  detail: `the kernel's driver ${driver} has taken the ${name}`,
  fix: `name its bus as ${key} under [peripherals.adapter], or keep the driver from loading: \`blacklist ${driver}\` in /etc/modprobe.d/sluice.conf`,
})

const mayUse = (path: string): Promise<boolean> =>
  access(path, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  )

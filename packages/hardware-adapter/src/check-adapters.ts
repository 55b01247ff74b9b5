/** The findings for `sluice doctor`: which adapters work on this machine, and what is missing for the others. */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { checkDevicePath } from '@sluice/hardware'
import { AppError, errorText, type Finding } from '@sluice/sdk'
import { groupAccess } from './adapter-errors.ts'
import type { AdapterSettings } from './config.ts'
import { type AdapterEnvironment, adaptersOfKernelDrivers, CH341A_ID, type KernelDriver, MCP2221_ID } from './find-adapters.ts'
import { NATIVE_FIX, type Native, type NativePackage } from './native.ts'
import { accessTo } from './open-adapter.ts'
import type { PresentAdapter, PresentAdapters } from './present-adapters.ts'

export async function checkAdapters(
  adapters: PresentAdapters,
  { transport, i2c, spi }: AdapterSettings,
  { native, paths }: AdapterEnvironment,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const usesPaths = transport === 'auto' || transport === 'linux'
  if (usesPaths && i2c !== undefined) findings.push(await checkBus(native, i2c, 'i2c'))
  if (usesPaths && spi !== undefined) findings.push(await checkBus(native, spi, 'spi'))
  if (transport === 'linux' && i2c === undefined && spi === undefined) findings.push(NO_BUS_NAMED)
  const isConnected = await adapters.pick().then(
    () => true,
    () => adapters.present().length > 0,
  )
  for (const present of adapters.present()) findings.push(...(await checkAdapter(native, present)))
  if (transport === 'auto') findings.push(...(await adaptersOfKernelDrivers(paths.sys)).map(ownedByKernel))
  if (!isConnected && findings.length === 0) findings.push({ status: 'ok', detail: 'no I2C/SPI adapter is connected' })
  return findings
}

const NO_BUS_NAMED: Finding = {
  status: 'warn',
  detail: 'the transport `linux` only uses the buses of the kernel, and none is named',
  fix: 'name one as i2c or spi under [peripherals.adapter], or use another transport',
}

async function checkBus(native: Native, path: string, kind: 'i2c' | 'spi'): Promise<Finding> {
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
  return (await isUsable(path))
    ? { status: 'ok', detail: `${path} can be used` }
    : { status: 'fail', detail: `no permission for ${path}`, fix: groupAccess(kind) }
}

async function checkAdapter(native: Native, { alias, adapter, found, notes }: PresentAdapter): Promise<readonly Finding[]> {
  const warnings = notes.map(
    (note): Finding => ({ status: 'warn', detail: `${alias}: ${note}`, fix: 'change it under [peripherals.adapter]' }),
  )
  if (found.kind === 'linux') return warnings
  if (found.kind === 'sim') return [{ status: 'ok', detail: `${alias} is simulated` }, ...warnings]
  const missing = await missingPackage(native, found.kind === 'mcp2221' ? 'node-hid' : 'usb')
  if (missing) return [missing, ...warnings]
  // On other systems than Linux the path is not a file, so only opening the device shows whether it can be used.
  const isReachable = (await isUsable(found.path)) || !found.path.startsWith('/dev/')
  const id = found.kind === 'mcp2221' ? MCP2221_ID : CH341A_ID
  const state: Finding = isReachable
    ? { status: 'ok', detail: `${alias}: ${adapter.name} at ${found.path} can be used` }
    : { status: 'fail', detail: `${alias}: no permission for ${adapter.name} at ${found.path}`, fix: accessTo(id) }
  return [state, ...warnings]
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

const ownedByKernel = ({ name, driver, key }: KernelDriver): Finding => ({
  status: 'warn',
  detail: `the kernel driver ${driver} owns the ${name}`,
  fix: `name its bus as ${key} under [peripherals.adapter], or keep the driver from loading: \`blacklist ${driver}\` in /etc/modprobe.d/sluice.conf`,
})

const isUsable = (path: string): Promise<boolean> =>
  access(path, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  )

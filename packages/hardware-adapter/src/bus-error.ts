/** What goes wrong on a bus or with an adapter, each with its sentence in one place. */
import { AppError, errorText } from '@sluice/sdk'
import { hexByte } from './hex.ts'

export const notAcknowledged = (address: number): AppError => new AppError('not_found', `No device acknowledges at ${hexByte(address)}`)

export const dataNotAcknowledged = (address: number): AppError =>
  new AppError('upstream', `The device at ${hexByte(address)} did not acknowledge all of the data`)

export const stuckBus = (detail: string): AppError =>
  new AppError('upstream_timeout', `The I2C bus hangs: ${detail}; check pull-up resistors, power and wiring`)

export const noAnswer = (name: string): AppError => new AppError('upstream_timeout', `The ${name} does not answer`)

export const garbled = (name: string, detail: string): AppError => new AppError('upstream', `The ${name} answered ${detail}`)

export const lost = (name: string, cause: unknown): AppError =>
  new AppError('unavailable', `The ${name} was unplugged or stopped working: ${errorText(cause)}`, { cause })

/** Whether the transport is as usable as before: what failed lies beyond it, or was refused before it. */
export const leavesTransportUsable = (error: unknown): boolean =>
  error instanceof AppError && (error.code === 'not_found' || error.code === 'invalid_request')

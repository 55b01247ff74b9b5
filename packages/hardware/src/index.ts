/** The parts that the hardware features share: known boards, device paths, leases and GPIO lines. */
export type { Board, BoardFamily, MemoryRange } from './boards.ts'
export { BOARD_NAMES, BOARDS, boardNamed, boardOfUsb, FAMILY_BY_VENDOR, THIS_MACHINE, unknownBoard } from './boards.ts'
export type { DeviceGuard, DeviceLimits, DeviceUse, HeldDevices } from './device-guard.ts'
export { createDeviceGuard } from './device-guard.ts'
export type { DeviceKind } from './device-path.ts'
export { checkDevicePath, isDevicePath, scannedPath } from './device-path.ts'
export type {
  Bias,
  Direction,
  Edge,
  EdgeEvent,
  EdgeWatch,
  Gpio,
  GpioChip,
  GpioLineInfo,
  GpioLines,
  Level,
  LineRequest,
} from './gpio/gpio.ts'
export { openGpio } from './gpio/linux-gpio.ts'
export { missingGpioPackage } from './native.ts'
export type { BoardEntry } from './peripheral-keys.ts'
export { boardEntryProblem, bridgeAddress, peripheralKeys } from './peripheral-keys.ts'

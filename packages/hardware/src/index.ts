/** What the features that reach hardware share. */
export { BOARD_NAMES, THIS_MACHINE, unknownBoard } from './board-name.ts'
export type { Board, BoardFamily, MemoryRange } from './boards.ts'
export { BOARDS, boardNamed, boardOfUsb, FAMILY_BY_VENDOR } from './boards.ts'
export { bridgeAddress } from './bridge-address.ts'
export type { DeviceGuard, DeviceLimits, DeviceUse } from './device-guard.ts'
export { createDeviceGuard } from './device-guard.ts'
export type { DeviceKind } from './device-path.ts'
export { checkDevicePath, isDevicePath } from './device-path.ts'
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
export { lacksGpio } from './native.ts'
export type { BoardEntry } from './peripheral-keys.ts'
export { doubtOf, peripheralKeys } from './peripheral-keys.ts'

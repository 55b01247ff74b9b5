/**
 * Re-exports the modules that are loaded at their first use. A bundle keeps them in one file, which the start of the daemon does
 * not load. Import this module dynamically only.
 */
export { checkBoards } from './check.ts'
export { add } from './commands/add.ts'
export { flash } from './commands/flash.ts'
export { introspect } from './commands/introspect.ts'
export { discover, list } from './commands/list-devices.ts'
export { readMain, writeMain } from './repl/main-file.ts'
export { withRepl } from './repl/repl.ts'
export { checkBoardA, flashBoardA } from './tools/flash-board-a.ts'
export { createLine } from './transports/create-line.ts'
export { openSerialPort } from './transports/serial-port.ts'

/**
 * Everything that is loaded with its first use, behind one door: what a build loads at its start is then in few files. To be
 * imported dynamically.
 */
export { checkBoards } from './check.ts'
export { add } from './commands/add.ts'
export { discover } from './commands/discover.ts'
export { flash } from './commands/flash.ts'
export { introspect } from './commands/introspect.ts'
export { list } from './commands/list.ts'
export { readMain, writeMain } from './repl/main-file.ts'
export { withRepl } from './repl/repl.ts'
export { checkBoardA, flashBoardA } from './tools/flash-board-a.ts'
export { createLine } from './transports/create-line.ts'
export { openSerialPort } from './transports/serial-port.ts'

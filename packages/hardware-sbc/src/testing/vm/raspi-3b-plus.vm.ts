/** Runs the tests of a real board on an emulated 3B+. */
import { realBoard } from './real-board.ts'

export default realBoard('raspi-3b-plus', '3B+')

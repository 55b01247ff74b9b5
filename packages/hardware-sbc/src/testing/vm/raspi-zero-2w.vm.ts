/** Runs the tests of a real board on an emulated Zero 2W. */
import { realBoard } from './real-board.ts'

export default realBoard('raspi-zero-2w', 'Zero 2W')

/** The 3B+, by its own device tree. */
import { realBoard } from '../real-board.ts'

export default realBoard('raspi-3b-plus', '3B+')

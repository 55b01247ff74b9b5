/** The Zero 2W, by its own device tree. */
import { realBoard } from '../real-board.ts'

export default realBoard('raspi-zero-2w', 'Zero 2W')

// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A SPI bus with nothing behind it, for tests of /dev/spidev<bus>.<select>:
 * select 0 echoes the bytes it receives; select 1 is a serial NOR flash of 64 KiB in
 * pages of 256 bytes and sectors of 4 KiB, all ones at first, that answers
 * 9f (id ef 40 18), 05 (status), 06/04 (write enable/disable), 03 (read),
 * 02 (program) and 20 (erase a sector).
 */
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/spi/spi.h>
#include <linux/version.h>

#define FLASH_BYTES 65536u
#define PAGE_BYTES 256u
#define SECTOR_BYTES 4096u

enum { OP_READ_ID = 0x9f, OP_READ_STATUS = 0x05, OP_WRITE_ENABLE = 0x06, OP_WRITE_DISABLE = 0x04,
       OP_READ = 0x03, OP_PROGRAM = 0x02, OP_ERASE = 0x20 };

static struct {
	u8 memory[FLASH_BYTES];
	bool may_write;
	/* State of the current command: */
	unsigned int clocked;
	u8 command;
	u32 address;
} flash;

static unsigned int select_of(const struct spi_device *device)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	return spi_get_chipselect(device, 0);
#else
	return device->chip_select;
#endif
}

/* Returns the byte to send while `in` arrives, after the command and its address. */
static u8 flash_data(u8 in, unsigned int index)
{
	static const u8 id[] = { 0xef, 0x40, 0x18 };
	u8 out = 0xff;

	switch (flash.command) {
	case OP_READ_ID:
		return index < sizeof(id) ? id[index] : 0;
	case OP_READ_STATUS:
		return flash.may_write ? 2 : 0;
	case OP_READ:
		out = flash.memory[flash.address];
		flash.address = (flash.address + 1) % FLASH_BYTES;
		return out;
	case OP_PROGRAM:
		if (flash.may_write)
			flash.memory[flash.address] &= in;
		flash.address = (flash.address & ~(PAGE_BYTES - 1)) | ((flash.address + 1) & (PAGE_BYTES - 1));
		return out;
	default:
		return out;
	}
}

static bool takes_address(u8 command)
{
	return command == OP_READ || command == OP_PROGRAM || command == OP_ERASE;
}

static u8 flash_clock(u8 in)
{
	unsigned int at = flash.clocked++;

	if (at == 0) {
		flash.command = in;
		flash.address = 0;
		return 0xff;
	}
	if (!takes_address(flash.command))
		return flash_data(in, at - 1);
	if (at <= 3) {
		flash.address = ((flash.address << 8) | in) % FLASH_BYTES;
		return 0xff;
	}
	return flash_data(in, at - 4);
}

/* Commands that change the memory take effect when the chip is deselected. */
static void flash_deselect(void)
{
	if (flash.clocked == 1 && flash.command == OP_WRITE_ENABLE)
		flash.may_write = true;
	else if (flash.clocked == 1 && flash.command == OP_WRITE_DISABLE)
		flash.may_write = false;
	else if (flash.clocked == 4 && flash.command == OP_ERASE && flash.may_write)
		memset(&flash.memory[flash.address & ~(SECTOR_BYTES - 1)], 0xff, SECTOR_BYTES);
	if (flash.clocked > 1 && (flash.command == OP_ERASE || flash.command == OP_PROGRAM))
		flash.may_write = false;
	flash.clocked = 0;
}

static void sim_set_cs(struct spi_device *device, bool level)
{
	if (select_of(device) == 1 && level)
		flash_deselect();
}

static int sim_transfer_one(struct spi_controller *controller, struct spi_device *device, struct spi_transfer *transfer)
{
	const u8 *tx = transfer->tx_buf;
	u8 *rx = transfer->rx_buf;
	unsigned int i;

	for (i = 0; i < transfer->len; i++) {
		u8 in = tx ? tx[i] : 0;
		u8 out = select_of(device) == 1 ? flash_clock(in) : in;

		if (rx)
			rx[i] = out;
	}
	return 0;
}

static struct platform_device *platform;

static int __init spi_sim_init(void)
{
	/* A name that the spidev driver accepts. */
	struct spi_board_info info = { .modalias = "ltc2488", .max_speed_hz = 10000000 };
	struct spi_controller *controller;
	int result;

	memset(flash.memory, 0xff, FLASH_BYTES);
	platform = platform_device_register_simple("spi-sim", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(platform))
		return PTR_ERR(platform);
	controller = spi_alloc_master(&platform->dev, 0);
	if (!controller) {
		platform_device_unregister(platform);
		return -ENOMEM;
	}
	controller->bus_num = 0;
	controller->num_chipselect = 2;
	controller->mode_bits = SPI_CPOL | SPI_CPHA | SPI_CS_HIGH | SPI_LOOP;
	controller->bits_per_word_mask = SPI_BPW_MASK(8);
	controller->max_speed_hz = 50000000;
	controller->set_cs = sim_set_cs;
	controller->transfer_one = sim_transfer_one;
	result = spi_register_controller(controller);
	if (result) {
		spi_controller_put(controller);
		platform_device_unregister(platform);
		return result;
	}
	platform_set_drvdata(platform, controller);
	for (info.chip_select = 0; info.chip_select < 2; info.chip_select++)
		if (!spi_new_device(controller, &info))
			pr_warn("spi-sim: nothing at select %d\n", info.chip_select);
	return 0;
}

static void __exit spi_sim_exit(void)
{
	spi_unregister_controller(platform_get_drvdata(platform));
	platform_device_unregister(platform);
}

module_init(spi_sim_init);
module_exit(spi_sim_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("A simulated SPI bus: an echo and a flash chip");

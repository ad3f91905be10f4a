// Prints the lines of the input that a filter file may contain.
#include <iostream>
#include <petal.hpp>

int main(int, char **args) {
    try {
        const auto filter = petal::filter::open(args[1]);
        for (std::string line; std::getline(std::cin, line);) {
            if (filter.contains(line)) {
                std::cout << line << '\n';
            }
        }
    } catch (const petal::error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}

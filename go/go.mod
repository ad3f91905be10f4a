module example.com/petal/go

go 1.19
